# Schemas: what is imported from other projects and what is generated from them. CRDS and PYTHON come from the Makefile.

.PHONY: import-schemas
import-schemas: venv ## Import the CRDs that schemas/versions.yaml pins: make import-schemas CRDS="FOLDER ...".
	$(PYTHON) schemas/tools/import_schemas.py $(CRDS)

.PHONY: traefik-crds
traefik-crds: ## Copy Traefik's CRDs out of its Go module for import-schemas: make traefik-crds CRDS=FOLDER.
	version=$$(sed -n 's/^    folder: traefik-//p' schemas/versions.yaml) && \
	dir=$$(go mod download -json github.com/traefik/traefik/v3@$$version | sed -n 's/^.*"Dir": "\(.*\)",$$/\1/p') && \
	mkdir -p $(CRDS)/traefik-$$version && \
	install -m 644 $$dir/docs/content/reference/dynamic-configuration/traefik.io_*.yaml $(CRDS)/traefik-$$version/

.PHONY: generate
generate: venv ## Rebuild schemas/modelplane_schemas from apis/ and schemas/crds.
	$(PYTHON) schemas/tools/generate.py

.PHONY: check-generated
check-generated: venv ## Say which generated files differ from what `make generate` writes.
	$(PYTHON) schemas/tools/generate.py --check
