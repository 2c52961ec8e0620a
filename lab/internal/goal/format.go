package goal

import (
	"strconv"
	"time"
)

// rateText writes a rate with three digits or all before the point: 1,900/s, 0.25/s.
func rateText(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'g', 3, 64) + "/s"
	}
	return thousands(strconv.FormatFloat(rate, 'f', 0, 64)) + "/s"
}

// count writes a number of calls: 10,000.
func count(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

// thousands puts commas into a whole number that is not below 0.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent writes a share with up to three digits: 5%.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// short writes a duration with up to four digits: 87.31ms.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for unit*10_000 <= d {
		unit *= 10
	}
	return d.Round(unit).String()
}
