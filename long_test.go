//go:build long

package stockproof_test

// long runs every scheme of the wider set live at every place.
const long = true
