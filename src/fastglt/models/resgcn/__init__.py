"""ResGCN: deep residual networks of GENConv layers; the network, and its twin from PyG's layers."""
