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
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
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
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Shop, Ltd."}}, NotAfter: time.Now().Add(time.Hour),
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
	// Whoever is let in has time for it on a busy machine; who is not would be tried again for as long.
	const enough, short = time.Minute, 2 * time.Second
	ping := func(o *options.ClientOptions, most time.Duration) error {
		c := g.connect(t, credential(o, "ada@shop", "", password).SetServerSelectionTimeout(most))
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		return c.Database("shop").RunCommand(ctx, bson.D{{Key: "find", Value: "c"}}).Err()
	}
	must(t, "with a certificate", ping(options.Client().SetTLSConfig(a.client(t, "client")), enough))
	if err := ping(options.Client().SetTLSConfig(a.client(t, "")), short); err == nil {
		t.Error("a client without a certificate is let in")
	}
	other := newAuthority(t)
	other.sign(t, "stranger", 4)
	strange := a.client(t, "")
	pair, err := tls.LoadX509KeyPair(other.file("stranger"), other.file("stranger-key"))
	must(t, "load", err)
	strange.Certificates = []tls.Certificate{pair}
	if err := ping(options.Client().SetTLSConfig(strange), short); err == nil {
		t.Error("a certificate of another authority is let in")
	}
	if err := ping(options.Client(), short); err == nil {
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
	must(t, "with the certificate before", ping(options.Client().SetTLSConfig(a.client(t, "client")), enough))
}

// TestCertificateLogin logs in with certificates: of a user of the configuration, of one that createUser made, of nobody, and of another than it says.
func TestCertificateLogin(t *testing.T) {
	a := newAuthority(t)
	for i, name := range []string{"server", "loader", "reader", "nobody"} {
		a.sign(t, name, int64(i+2))
	}
	subject := func(name string) string { return `CN=` + name + `,O=Shop\, Ltd.` }
	users := "users:\n" + entry(t, "boss@admin", auth.Mechanisms()[:1], "root") + "  '" + subject("loader") + "@$external': {roles: [readWrite@shop]}\n"
	g := serve(t, fmt.Sprintf("tls: {certificate: %s, key: %s, clients: %s}\n%s", a.file("server"), a.file("server-key"), a.file("authority"), users))
	as := func(certificate, user string) *mongo.Client {
		o := options.Client().SetTLSConfig(a.client(t, certificate))
		return g.connect(t, o.SetAuth(options.Credential{AuthMechanism: "MONGODB-X509", AuthSource: "$external", Username: user}))
	}
	insert := func(c *mongo.Client) error {
		_, err := c.Database("shop").Collection("c").InsertOne(t.Context(), bson.D{})
		return err
	}
	must(t, "a user of the configuration", insert(as("loader", "")))
	must(t, "the same by its name", insert(as("loader", subject("loader"))))
	mustCode(t, "nobody's certificate", insert(as("nobody", "")), authenticationFailed)
	mustCode(t, "another's name", insert(as("nobody", subject("loader"))), authenticationFailed)

	boss := g.connect(t, credential(options.Client().SetTLSConfig(a.client(t, "nobody")), "boss@admin", "", password))
	create := func(more ...bson.E) error {
		reader := bson.A{bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "shop"}}}
		_, err := command(t, boss, "$external", append(bson.D{{Key: "createUser", Value: subject("reader")}, {Key: "roles", Value: reader}}, more...))
		return err
	}
	mustCode(t, "a user with a certificate and a password", create(bson.E{Key: "pwd", Value: password}), 2)
	must(t, "createUser", create())
	reader := as("reader", "")
	must(t, "one that createUser made", reader.Database("shop").Collection("c").FindOne(t.Context(), bson.D{}).Err())
	mustCode(t, "what its role does not allow", insert(reader), unauthorized)
	status, err := command(t, reader, "admin", bson.D{{Key: "connectionStatus", Value: 1}})
	must(t, "connectionStatus", err)
	if text := textOf(t, status); !strings.Contains(text, `"db":"$external"`) || !strings.Contains(text, "CN=reader") {
		t.Errorf("connectionStatus: %s", text)
	}
	info, err := command(t, boss, "$external", bson.D{{Key: "usersInfo", Value: 1}})
	must(t, "usersInfo", err)
	if text := textOf(t, info); strings.Count(text, `"mechanisms":["external"]`) != 2 {
		t.Errorf("usersInfo: %s", text)
	}
	_, err = command(t, boss, "$external", bson.D{{Key: "find", Value: "c"}})
	mustCode(t, "a collection of $external", err, 73)
	_, err = command(t, reader, "shop", bson.D{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}})
	mustCode(t, "authenticate on another database", err, 17)
	_, err = command(t, boss, "$external", bson.D{{Key: "dropUser", Value: subject("reader")}})
	must(t, "dropUser", err)
	mustCode(t, "one that is dropped", insert(reader), unauthorized)
}

// TestCertificateWithoutTLS: where nobody is asked for a certificate, none logs in.
func TestCertificateWithoutTLS(t *testing.T) {
	g := serve(t, "auth: on\n")
	_, err := command(t, g.as(t, ""), "$external", bson.D{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}, {Key: "user", Value: ""}})
	mustCode(t, "authenticate", err, authenticationFailed)
	if _, err := oxbow.Open(t.Context(), oxbow.Options{Config: []byte("users: {'CN=ada@$external': {roles: [read@shop]}}\n")}); err == nil ||
		!strings.Contains(err.Error(), "needs tls with clients") {
		t.Errorf("a user who could never log in: %v", err)
	}
}
