package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/auth"
)

// authority makes certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, "make a key", err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	must(t, "sign", err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, "parse", err)
	writePEM(t, a.file("authority"), "CERTIFICATE", der)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

// sign writes NAME.pem and NAME-key.pem.
func (a *authority) sign(t *testing.T, name string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, "make a key", err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(t, "sign", err)
	secret, err := x509.MarshalECPrivateKey(key)
	must(t, "encode the key", err)
	writePEM(t, a.file(name), "CERTIFICATE", der)
	writePEM(t, a.file(name+"-key"), "EC PRIVATE KEY", secret)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	must(t, "write", os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *authority) client(t *testing.T, name string) *tls.Config {
	t.Helper()
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	cfg.RootCAs.AddCert(a.cert)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.file(name), a.file(name+"-key"))
		must(t, "load", err)
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg
}

// TestTLS serves encrypted connections to clients that show a certificate, and takes a new certificate of its own when it reads its configuration again.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	a.sign(t, "server", 2)
	a.sign(t, "client", 3)
	g := serve(t, fmt.Sprintf("tls: {certificate: %s, key: %s, clients: %s}\nusers:\n%s", a.file("server"), a.file("server-key"), a.file("authority"),
		entry(t, "ada@shop", auth.Mechanisms(), "readWrite")))
	ping := func(o *options.ClientOptions) error {
		c := g.connect(t, credential(o, "ada@shop", "", password).SetServerSelectionTimeout(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return c.Database("shop").RunCommand(ctx, bson.D{{Key: "find", Value: "c"}}).Err()
	}
	must(t, "with a certificate", ping(options.Client().SetTLSConfig(a.client(t, "client"))))
	if err := ping(options.Client().SetTLSConfig(a.client(t, ""))); err == nil {
		t.Error("a client without a certificate is let in")
	}
	other := newAuthority(t)
	other.sign(t, "stranger", 4)
	strange := a.client(t, "")
	pair, err := tls.LoadX509KeyPair(other.file("stranger"), other.file("stranger-key"))
	must(t, "load", err)
	strange.Certificates = []tls.Certificate{pair}
	if err := ping(options.Client().SetTLSConfig(strange)); err == nil {
		t.Error("a certificate of another authority is let in")
	}
	if err := ping(options.Client()); err == nil {
		t.Error("a connection that isn't encrypted is let in")
	}

	a.sign(t, "server", 5)
	must(t, "reload", g.Reload(t.Context()))
	nc, err := tls.Dial("tcp", g.Addr().String(), a.client(t, "client"))
	must(t, "connect", err)
	defer nc.Close()
	if serial := nc.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); serial != 5 {
		t.Errorf("after a reload the server shows certificate %d", serial)
	}
	must(t, "write a file that is no certificate", os.WriteFile(a.file("server"), []byte("x"), 0o600))
	if err := g.Reload(t.Context()); err == nil {
		t.Error("a file that is no certificate is loaded")
	}
	must(t, "with the certificate before", ping(options.Client().SetTLSConfig(a.client(t, "client"))))
}
