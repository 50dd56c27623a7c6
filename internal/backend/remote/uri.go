package remote

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// defaultPatience is how long a command waits for a connection where the URI does not say it.
const defaultPatience = 10 * time.Second

// waitQueueTimeout reads waitQueueTimeoutMS, which the driver doesn't know any more
// (https://www.mongodb.com/docs/manual/reference/connection-string-options/#connection-pool-options).
func waitQueueTimeout(uri string) (time.Duration, error) {
	_, query, _ := strings.Cut(uri, "?")
	for option := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(option, "=")
		if !strings.EqualFold(name, "waitQueueTimeoutMS") {
			continue
		}
		ms, err := strconv.ParseUint(value, 10, 31)
		if err != nil || ms == 0 {
			return 0, errors.New("waitQueueTimeoutMS must be a positive number of milliseconds")
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	return defaultPatience, nil
}

// refuseUnknown refuses the options of a URI that the driver passes over, so that nobody takes them for heard; waitQueueTimeoutMS is read here.
func refuseUnknown(uri string) error {
	// What is asked for is options alone: hosts need no look-up.
	known, err := connstring.Parse(strings.Replace(uri, "mongodb+srv://", "mongodb://", 1))
	if err != nil {
		return nil // whoever reads the whole URI says what is wrong with it
	}
	for _, name := range slices.Sorted(maps.Keys(known.UnknownOptions)) {
		if name != "waitqueuetimeoutms" {
			return fmt.Errorf("the option %s is not known here: leave it out", name)
		}
	}
	return nil
}

// hidden stands where a credential stood.
const hidden = "***"

// withoutSecrets returns an error about a URI without what stands before its hosts, however much of it the message quotes.
func withoutSecrets(err error, uri string) error {
	text := err.Error()
	for _, secret := range secretsOf(uri) {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	if text == err.Error() {
		return err
	}
	return fmt.Errorf("%s", text)
}

// secretsOf are the user information of a URI, its password, and this decoded: the longest first.
func secretsOf(uri string) []string {
	_, rest, ok := strings.Cut(uri, "://")
	if !ok {
		rest = uri
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return nil
	}
	all := []string{rest[:at]}
	if _, password, ok := strings.Cut(rest[:at], ":"); ok && password != "" {
		all = append(all, password)
		if decoded, err := url.PathUnescape(password); err == nil && decoded != password {
			all = append(all, decoded)
		}
	}
	return all
}
