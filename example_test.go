package stockproof_test

import (
	"context"
	"fmt"
	"os"

	"stockproof"
)

// A scheme that reads, compares and then takes is convicted without any fault.
func ExampleJudge() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	verdicts, err := stockproof.Judge(context.Background(), unguarded{},
		stockproof.UnderFaults(stockproof.None),
		stockproof.WithWorkloads("unit"),
		stockproof.WithRetries("off"),
		stockproof.KeepIn(dir))
	if err != nil {
		panic(err)
	}
	for _, finding := range verdicts.Unexpected() {
		fmt.Println(finding.Property, "is", finding.What)
	}
	// Output:
	// oversell is broken, and promised to hold
	// negative-transient is broken, and promised to hold
	// negative-permanent is broken, and promised to hold
	// non-linearizable is broken, and promised to hold
}
