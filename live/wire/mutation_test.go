package wire

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Garbled sessions end, one way or another: a quick stand-in for the fuzz
// targets in every run.
func TestGarbledPostgresSessionsEnd(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	garble := func(s string) []byte {
		b := []byte(s)
		for range random.IntN(4) {
			i := random.IntN(len(b) - 1)
			switch random.IntN(3) {
			case 0:
				b[i] = byte(random.IntN(256))
			case 1:
				b = append(b[:i], b[i+1:]...)
			case 2:
				b = b[:i+2]
			}
			if len(b) < 3 {
				break
			}
		}
		return b
	}
	for range 300 {
		g := &recorder{}
		r := newRig(Postgres, g)
		feed(r.c.up.in, garble(sessionAsked), random.IntN(50), 1)
		r.asked()
		feed(r.c.down.in, garble(sessionAnswers), random.IntN(50), 1)
		r.answered()
		g.requireEachEndsOnce(t)
	}
}
