package main

import (
	"fmt"
	"strconv"
)

// amount is a flag that takes a number from least on, or the word any.
type amount struct {
	n     int
	any   bool
	least int
}

const anyAmount = "any"

// String implements pflag.Value.
func (a *amount) String() string {
	if a.any {
		return anyAmount
	}
	return strconv.Itoa(a.n)
}

// Set implements pflag.Value.
func (a *amount) Set(text string) error {
	if text == anyAmount {
		a.any, a.n = true, 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < a.least {
		return fmt.Errorf("want a number from %d on, or %s", a.least, anyAmount)
	}
	a.any, a.n = false, n
	return nil
}

// Type implements pflag.Value.
func (a *amount) Type() string { return "number|any" }
