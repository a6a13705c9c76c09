//go:build !long

package stockproof_test

const long = false
