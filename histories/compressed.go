package histories

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Open opens a file for reading; one that is compressed with gzip or Zstandard,
// which its first bytes tell, is decompressed on the way.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := decompress(f)
	if err != nil {
		_ = f.Close() // was only read
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return both{r, f}, nil
}

// both reads from one and closes the other as well.
type both struct {
	io.ReadCloser
	file io.Closer
}

func (b both) Close() error {
	_ = b.ReadCloser.Close() // nothing is written
	return b.file.Close()
}

func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 64*1024)
	magic, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}
