package webcall

// Answer is where an answer goes.
type Answer struct {
	Write func(p []byte) error
	Flush func() error
}

// smallPiece is how much of an answer is read at a time until there is more at once: a stream
// on which little comes holds no more than that while it waits.
const smallPiece = 1 << 10

// Pass hands an answer over as it comes, with a flush where nothing more is there yet.
//
// Errors: io.EOF when all has come; otherwise why not.
func (a Answer) Pass(from Receiver) error {
	piece := make([]byte, smallPiece)
	for {
		if err := a.Wait(from); err != nil {
			return err
		}
		n, err := from.Read(piece)
		if n > 0 {
			if gone := a.Write(piece[:n]); gone != nil {
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

// Wait flushes what was written if nothing more is there yet.
func (a Answer) Wait(from Receiver) error {
	if from.Waits() {
		return a.Flush()
	}
	return nil
}
