"""Does anything reach what it must not?"""
