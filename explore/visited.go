package explore

// width is the length of a state in words: versions of the stores, counters,
// one local a client.
const width = 2 + maxLocals

// state is one point of the search: [0] versions, [1] faults used and epoch,
// [2:] locals, sorted under symmetry.
type state [width]uint32

func (s *state) used() uint32  { return s[1] >> 16 }
func (s *state) epoch() uint32 { return s[1] & 0xffff }

func (s *state) hash() uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(m1)
	for i := 0; i < width; i += 2 {
		h ^= uint64(s[i]) | uint64(s[i+1])<<32
		h *= m2
		h ^= h >> 29
	}
	return h * m1
}

const (
	touched   = 16 // hashes at a time
	slabBits  = 10
	firstBits = 10
)

// visited numbers states in the order in which they are met. States live in
// slabs that never move; the table holds their numbers by open addressing, each
// with the upper half of its hash. That half also says where an entry belongs,
// so that the table grows without looking at a state.
type visited struct {
	slabs [][]state
	table []uint64 // upper 32 bits of the hash, then number plus one
	bits  uint     // of the table's size
	n     uint32
	met   uint32 // keeps touch from being optimised away
}

func newVisited() *visited { return &visited{table: make([]uint64, 1<<firstBits), bits: firstBits} }

func (v *visited) at(i uint32) *state { return &v.slabs[i>>slabBits][i&(1<<slabBits-1)] }

// add finds a state by its hash or gives it the next number.
func (v *visited) add(s *state, h uint64) (id uint32, fresh bool) {
	if uint64(v.n)*3 >= uint64(len(v.table))*2 {
		v.grow()
	}
	mask := uint64(len(v.table) - 1)
	tag := h &^ (1<<32 - 1)
	for i := h >> (64 - v.bits); ; i = (i + 1) & mask {
		e := v.table[i]
		if e == 0 {
			id = v.n
			if id>>slabBits == uint32(len(v.slabs)) {
				v.slabs = append(v.slabs, make([]state, 1<<slabBits))
			}
			*v.at(id) = *s
			v.n++
			v.table[i] = tag | uint64(v.n)
			return id, true
		}
		if e&^(1<<32-1) == tag {
			if id = uint32(e) - 1; *v.at(id) == *s {
				return id, false
			}
		}
	}
}

// touch loads what add will ask for some hashes: the misses of the cache then
// happen side by side and not one after the other.
func (v *visited) touch(hashes []uint64) {
	var met uint32
	var found [touched]uint64
	for i, h := range hashes {
		found[i%touched] = v.table[h>>(64-v.bits)]
	}
	for i := range hashes {
		if e := uint32(found[i%touched]); e != 0 {
			met ^= v.at(e - 1)[0]
		}
	}
	v.met = met
}

func (v *visited) grow() {
	old := v.table
	v.bits++
	v.table = make([]uint64, 1<<v.bits)
	mask := uint64(len(v.table) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		i := e >> (64 - v.bits)
		for v.table[i] != 0 {
			i = (i + 1) & mask
		}
		v.table[i] = e
	}
}

// bytes is the memory in use.
func (v *visited) bytes() int64 {
	return int64(len(v.slabs))<<slabBits*width*4 + int64(len(v.table))*8
}
