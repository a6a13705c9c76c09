package explore

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A memo answers what a Go map answers.
func TestAMemoIsAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var m memo[int]
	plain := map[memoKey]int{}
	for i := range 20000 {
		k := memoKey{rnd.Uint64N(200) << 32, 1 + rnd.Uint64N(200)}
		want, known := plain[k]
		got, ok := m.get(k)
		require.Equal(t, known, ok)
		if known {
			require.Equal(t, want, *got)
			continue
		}
		plain[k] = i
		m.put(k, i)
	}
	require.Equal(t, len(plain), m.n)
	for k, want := range plain {
		got, ok := m.get(k)
		require.True(t, ok)
		require.Equal(t, want, *got)
	}
}
