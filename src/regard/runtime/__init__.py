"""The models as plain NumPy in the papers' symbols: they translate, and `model/` is checked by them."""
