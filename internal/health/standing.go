package health

import "time"

// maxFailures questions in a row that an endpoint fails take it out.
const maxFailures = 3

// Standing is what is thought of an endpoint after all that it has said (R6).
// The zero value is one that has said nothing yet and does not serve.
//
// Concurrency: a Standing belongs to one goroutine.
type Standing struct {
	Serving bool   // it may get calls
	Suspect bool   // it serves, but is silent, and gets no new calls until it speaks
	Reason  string // why it does not serve, or is suspect; of the last verdict

	failures int       // in a row
	since    time.Time // when the question was put that made it suspect
}

// Hear takes in a verdict. NOT_SERVING counts at once. An endpoint that is idle,
// or doubtful, and does not answer at all is suspect; one that fails three
// questions in a row is out. Whoever is busy with calls that take as long as
// usual is just busy.
func (s *Standing) Hear(v Verdict) {
	s.Reason = v.Reason
	switch v.Finding {
	case Serving:
		s.Serving, s.failures = true, 0
	case NotServing:
		s.Serving, s.failures = false, 0
	case Busy:
		s.failures = 0
	case Failed:
		if s.failures++; s.failures >= maxFailures {
			s.Serving = false
		}
	}
	silent := !v.Answered && v.Finding == Failed || v.Doubted && (!v.Answered || v.Refused)
	switch {
	case v.Answered && !v.Refused || !s.Serving:
		s.Suspect = false
	case silent && !s.Suspect:
		s.Suspect, s.since = true, v.Asked
	}
}

// Speak ends the suspicion if a byte has come since the question was put; heard
// is when the last one came.
func (s *Standing) Speak(heard time.Time) {
	if s.Suspect && heard.After(s.since) {
		s.Suspect, s.failures = false, 0
	}
}
