"""Modelplane: one inference fleet from GPU clusters on any cloud.

Rooms, from the wire inwards: `xfn` speaks to Crossplane; `composed` builds the objects that several functions compose;
`scheduler`, `dra` and `routing` decide; `kube` holds the value types of Kubernetes; `simulate` plays Crossplane and its
providers for `modelplane plan` and the tests; `cli` is the command line.
"""
