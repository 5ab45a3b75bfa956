"""The fault lab: a strict, scripted server that misbehaves on purpose, and what clients of it are judged by.

``toolturn conform --adapter toolturn`` plays every row and prints a table. A new row goes into one of the modules of
:mod:`toolturn.conformance.faults`; :mod:`toolturn.conformance.adapter` says on one page how another library is put to
the test.
"""
