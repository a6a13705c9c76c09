package explore

// Witness is one execution.
type Witness struct{}

func (s *searcher) witness(uint32) *Witness { return &Witness{} }
