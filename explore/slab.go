package explore

// slab is a list that grows without moving what it holds.
type slab[V any] struct {
	pieces [][]V
	n      uint64
}

const pieceBits = 14

func (s *slab[V]) add(v V) {
	at := s.n & (1<<pieceBits - 1)
	if at == 0 {
		s.pieces = append(s.pieces, make([]V, 1<<pieceBits))
	}
	s.pieces[s.n>>pieceBits][at] = v
	s.n++
}

func (s *slab[V]) at(i uint64) V { return s.pieces[i>>pieceBits][i&(1<<pieceBits-1)] }

// bytes is the memory in use, each value taking size.
func (s *slab[V]) bytes(size int64) int64 { return int64(len(s.pieces)) << pieceBits * size }

// edge leads to a state in as many ways as there are interchangeable clients.
type edge struct {
	to   uint32
	mult uint8
}
