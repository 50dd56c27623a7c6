package auth

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xdg-go/scram"
)

// Mechanism is one of the two that MongoDB has for passwords.
type Mechanism string

// The mechanisms, the stronger one first.
const (
	SHA256 Mechanism = "SCRAM-SHA-256"
	SHA1   Mechanism = "SCRAM-SHA-1"
)

// Mechanisms lists both.
func Mechanisms() []Mechanism { return []Mechanism{SHA256, SHA1} }

// strength is how credentials of a mechanism are made: MongoDB's defaults of scramSHA256IterationCount and scramIterationCount, and its lengths of
// salt.
func (m Mechanism) strength() (iterations, salt int) {
	if m == SHA1 {
		return 10_000, 16
	}
	return 15_000, 28
}

// keyLength is the length of the mechanism's keys.
func (m Mechanism) keyLength() int {
	if m == SHA1 {
		return 20
	}
	return 32
}

func (m Mechanism) hash() scram.HashGeneratorFcn {
	if m == SHA1 {
		return scram.SHA1
	}
	return scram.SHA256
}

// Credential is what a server keeps of a password (RFC 5802): enough to check it, not to use it.
type Credential struct {
	Iterations int
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

// minIterations is the least that MongoDB takes (parameter scramIterationCount).
const minIterations = 5000

// NewCredential salts a password. The error says what is wrong with the password, without showing it.
func NewCredential(m Mechanism, user, password string) (Credential, error) {
	iterations, length := m.strength()
	salt := make([]byte, length)
	rand.Read(salt)
	return derive(m, user, password, salt, iterations)
}

func derive(m Mechanism, user, password string, salt []byte, iterations int) (Credential, error) {
	if password == "" {
		return Credential{}, errors.New("a password must not be empty")
	}
	var client *scram.Client
	var err error
	if m == SHA1 {
		client, err = m.hash().NewClientUnprepped(user, digest(user, password), "")
	} else {
		// Only the password is prepared (RFC 4013): MongoDB takes names of users as they are.
		if client, err = m.hash().NewClient("", password, ""); err != nil {
			err = errors.New("the password has characters that SCRAM-SHA-256 does not allow")
		}
	}
	if err != nil {
		return Credential{}, err
	}
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return Credential{}, fmt.Errorf("derive keys: %w", err)
	}
	return Credential{Iterations: iterations, Salt: salt, StoredKey: stored.StoredKey, ServerKey: stored.ServerKey}, nil
}

// digest is what takes the password's place in SCRAM-SHA-1
// (https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#scram-sha-1).
func digest(user, password string) string {
	sum := md5.Sum([]byte(user + ":mongo:" + password))
	return hex.EncodeToString(sum[:])
}

// String writes a credential as the configuration has it: iterations, salt, stored key and server key, the latter in base64, with "$" between.
func (c Credential) String() string {
	e := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%d$%s$%s$%s", c.Iterations, e(c.Salt), e(c.StoredKey), e(c.ServerKey))
}

// ParseCredential reads what String wrote. The error doesn't show the text.
func ParseCredential(m Mechanism, text string) (Credential, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 4 {
		return Credential{}, fmt.Errorf("must be four parts with $ between: iterations, salt, stored key, server key (oxbow password writes it)")
	}
	iterations, err := strconv.Atoi(parts[0])
	if err != nil {
		return Credential{}, errors.New("the iterations must be a whole number")
	}
	c := Credential{Iterations: iterations}
	for i, p := range []*[]byte{&c.Salt, &c.StoredKey, &c.ServerKey} {
		if *p, err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return Credential{}, fmt.Errorf("part %d is not base64", i+2)
		}
	}
	return c, c.check(m)
}

// check refuses credentials that can't be ones of the mechanism.
func (c Credential) check(m Mechanism) error {
	switch {
	case c.Iterations < minIterations || c.Iterations > 10_000_000:
		return fmt.Errorf("iterations must be from %d to 10000000, not %d", minIterations, c.Iterations)
	case len(c.Salt) < 8:
		return fmt.Errorf("a salt must have at least 8 bytes, not %d", len(c.Salt))
	case len(c.StoredKey) != m.keyLength() || len(c.ServerKey) != m.keyLength():
		return fmt.Errorf("keys of %s have %d bytes, not %d and %d", m, m.keyLength(), len(c.StoredKey), len(c.ServerKey))
	}
	return nil
}

// stored gives the credential as the SCRAM library takes it.
func (c Credential) stored() scram.StoredCredentials {
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations},
		StoredKey:  slices.Clone(c.StoredKey), ServerKey: slices.Clone(c.ServerKey),
	}
}
