package model

import "slices"

// chunk is how many items of a backlog lie together: a history that has to be
// kept whole must not be copied each time it outgrows its place.
const chunk = 1024

// backlog is the items of a history from some position on.
type backlog struct {
	chunks [][]item
	base   int // position of the first item in chunks
	first  int // position of the first item that is needed
	end    int // position behind the last item
	spare  []item
}

// push adds an item behind the last.
func (b *backlog) push(it item) {
	n := len(b.chunks)
	switch {
	case n == 0:
		b.chunks = append(b.chunks, b.spare[:0])
		b.spare = nil
		n = 1
	case len(b.chunks[n-1]) == chunk:
		if b.spare == nil {
			b.spare = make([]item, 0, chunk)
		}
		b.chunks = append(b.chunks, b.spare[:0])
		b.spare = nil
		n++
	}
	b.chunks[n-1] = append(b.chunks[n-1], it)
	b.end++
}

// at is the item at a position that was not dropped.
func (b *backlog) at(pos int) item {
	i := pos - b.base
	return b.chunks[i/chunk][i%chunk]
}

// drop forgets everything before a position.
func (b *backlog) drop(pos int) {
	b.first = pos
	for pos-b.base >= chunk {
		b.spare = b.chunks[0]
		b.chunks = slices.Delete(b.chunks, 0, 1)
		b.base += chunk
	}
}
