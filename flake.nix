{
  description = "Modelplane: one inference fleet from GPU clusters on any cloud";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in
    {
      # A shell in which `make` finds what it needs; Python packages still come from the pinned, hashed requirements.
      devShells = each (pkgs: {
        default = pkgs.mkShell {
          packages = [ pkgs.python311 pkgs.gnumake pkgs.git pkgs.go pkgs.kubectl ];
          PYTHON3 = "${pkgs.python311}/bin/python3.11";
        };
      });
    };
}
