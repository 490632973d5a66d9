"""Graphs on disk: prepared once from any source, then opened by memory map, however large they are.

A prepared graph is a folder, ``graph.fgr``, of ``.npy`` arrays and a manifest; see `fastglt.data.disk.layout`.
"""
