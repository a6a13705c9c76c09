package reaper

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lineReader reads whole lines of bounded length and goes on after a longer one,
// which bufio.Scanner does not.
type lineReader struct {
	in *bufio.Reader
}

func newLineReader(in io.Reader, limit int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, limit)}
}

// next returns a line without its end, io.EOF at the end (a torn last line is
// dropped), or another error for a line that is too long; the caller may go on.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, bufio.ErrBufferFull):
		n := len(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.in.ReadSlice('\n')
			n += len(line)
		}
		if err != nil {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("registration of %d bytes is too long", n)
	default:
		// A read error on a pipe means the same as its end: the parent is gone.
		return nil, io.EOF
	}
}
