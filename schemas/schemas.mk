# Schemas: what is imported from other projects and what is generated from them. CRDS and PYTHON come from the Makefile.

.PHONY: import-schemas
import-schemas: venv ## Import the CRDs that schemas/versions.yaml pins: make import-schemas CRDS=FOLDER.
	$(PYTHON) schemas/tools/import_schemas.py $(CRDS)

.PHONY: generate
generate: venv ## Rebuild schemas/modelplane_schemas from apis/ and schemas/crds.
	$(PYTHON) schemas/tools/generate.py

.PHONY: check-generated
check-generated: venv ## Say which generated files differ from what `make generate` writes.
	$(PYTHON) schemas/tools/generate.py --check
