package webcall

// Answer reads the answer of a call, and has what was written of it leave where nothing more is
// there yet.
type Answer struct {
	From  Receiver
	Flush func() error
}

// smallPiece is how much of an answer is read at a time until there is more at once: a stream
// on which little comes holds no more than that while it waits.
const smallPiece = 1 << 10

// Read implements io.Reader.
func (a Answer) Read(p []byte) (int, error) {
	if a.From.Waits() {
		if err := a.Flush(); err != nil {
			return 0, err
		}
	}
	return a.From.Read(p)
}

// Pass hands the answer over as it comes.
//
// Errors: io.EOF when all has come; otherwise why not.
func (a Answer) Pass(write func(p []byte) error) error {
	piece := make([]byte, smallPiece)
	for {
		n, err := a.Read(piece)
		if n > 0 {
			if gone := write(piece[:n]); gone != nil {
				return gone
			}
		}
		if n == len(piece) && n < PieceSize {
			piece = make([]byte, PieceSize)
		}
		if err != nil {
			return err
		}
	}
}
