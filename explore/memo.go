package explore

// memoKey is what a memo is asked by. b is never 0.
type memoKey struct{ a, b uint64 }

func (k memoKey) hash() uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (k.a ^ m1) * m2
	h ^= h >> 32
	h = (h ^ k.b) * m1
	h ^= h >> 29
	return h * m2
}

// memo is a map by open addressing that only grows. Keys and values lie side
// by side: an answer costs one miss of the cache, where Go's map costs a few
// and a hash of bytes.
type memo[V any] struct {
	slots []memoSlot[V]
	n     int
	shift uint
}

type memoSlot[V any] struct {
	key   memoKey
	value V
}

const memoBits = 6

// get finds a value; the pointer is good until the next put.
func (m *memo[V]) get(k memoKey) (*V, bool) {
	if m.n == 0 {
		return nil, false
	}
	mask := uint64(len(m.slots) - 1)
	for i := k.hash() >> m.shift; ; i++ {
		s := &m.slots[i&mask]
		if s.key == k {
			return &s.value, true
		}
		if s.key.b == 0 {
			return nil, false
		}
	}
}

// put adds a value for a key that has none.
func (m *memo[V]) put(k memoKey, v V) {
	if m.n*2 >= len(m.slots) {
		old := m.slots
		bits := uint(memoBits)
		for 1<<bits < len(old)*2 {
			bits++
		}
		m.slots, m.shift = make([]memoSlot[V], 1<<bits), 64-bits
		for i := range old {
			if old[i].key.b != 0 {
				m.place(old[i])
			}
		}
	}
	m.place(memoSlot[V]{k, v})
	m.n++
}

func (m *memo[V]) place(s memoSlot[V]) {
	mask := uint64(len(m.slots) - 1)
	i := s.key.hash() >> m.shift
	for m.slots[i&mask].key.b != 0 {
		i++
	}
	m.slots[i&mask] = s
}
