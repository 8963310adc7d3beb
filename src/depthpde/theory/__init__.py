"""The claims of the papers, one a file: statement, prediction, measurement, verdict."""
