"""What is tried on a model beside the one pass that is measured."""
