// An ordinary program that explores; it shows that no test binary is needed.
package main

import (
	"context"
	"fmt"
	"os"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func main() {
	entry, err := schemes.ByName("hincrby")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r, err := explore.Run(context.Background(), explore.Config{Entry: entry, Workload: faults.Workloads()[0]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(entry.Scheme.Name(), model.NegativeTransient, r.Verdicts[model.NegativeTransient].Status)
}
