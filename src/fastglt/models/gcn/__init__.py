"""GCN: the network, its program, its exported forms, and its twin from PyG's layers."""
