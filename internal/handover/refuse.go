package handover

import "fmt"

// maxFaults bounds the bytes of the faults that Refuse tells. Encoded they may be six
// times as long, and have to fit into one message.
const maxFaults = 8 << 10

// Refuse tells the process that has started this one as its successor why it cannot take
// over: the faults of its configuration or command line, one line each. It is called in
// place of Inherit; Predecessor.Fail is for faults that show later. In any other process
// it does nothing.
func Refuse(faults []string) {
	number := take(upgradeVariable)[upgradeVariable]
	if number == "" || len(faults) == 0 {
		return
	}
	file, err := inheritedFile(upgradeVariable, number)
	if err != nil {
		return // no process is there to tell
	}
	l, err := newLink(file)
	if err != nil {
		return
	}
	defer l.close()
	// A process that has ended or does not read will see that this one has ended.
	_ = l.send(&message{Kind: kindFailed, Error: firstOf(faults), Faults: bounded(faults)})
}

// firstOf is the fault in one line.
func firstOf(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return fmt.Sprintf("%s (and %d more)", faults[0], len(faults)-1)
}

// bounded returns as many lines as fit, and the number of the others.
func bounded(faults []string) (told []string) {
	room := maxFaults
	for i, fault := range faults {
		fault = oneLine(fault)
		if room -= len(fault); room < 0 {
			return append(told, fmt.Sprintf("and %d more", len(faults)-i))
		}
		told = append(told, fault)
	}
	return told
}

// RefusedError is the reason of a new process for giving up.
type RefusedError struct {
	Reason string
	// Faults are the faults of its configuration or its command line, one line each;
	// none if the reason was another one.
	Faults []string
}

// Error implements error: one line.
func (e *RefusedError) Error() string { return e.Reason }
