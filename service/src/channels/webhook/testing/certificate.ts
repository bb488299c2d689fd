/** Of a host that is nobody's, signed by itself, from 2020 to 2119: for receivers in tests. */
export const certificate = {
  name: 'hooks.example.test',
  cert: `-----BEGIN CERTIFICATE-----
MIIBjzCCATWgAwIBAgIUAW0A6sSba0jJJ7kNpdYXRDHrOmAwCgYIKoZIzj0EAwIw
HTEbMBkGA1UEAwwSaG9va3MuZXhhbXBsZS50ZXN0MCAXDTIwMDEwMTAwMDAwMFoY
DzIxMjAwMTAxMDAwMDAwWjAdMRswGQYDVQQDDBJob29rcy5leGFtcGxlLnRlc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ+ilKprDN3r5E5Bh/7T0i+mU+aN3Lw
6424UpCafNZbPMoaW9tISU/heOiWCgjqlLPpsPaimZP15vTf82hGDLOwo1EwTzAd
BgNVHREEFjAUghJob29rcy5leGFtcGxlLnRlc3QwDwYDVR0TAQH/BAUwAwEB/zAd
BgNVHQ4EFgQUbkmT8KahUbqRdrDVCnNwrxlAnSwwCgYIKoZIzj0EAwIDSAAwRQIh
ALJfZj+J4Ns29NdTElA70hEtPgW0BiKF9wx703rkEeFeAiAaN1bDacJL/QTVg1xW
tc0GHXsBhe4VP4iNrs9uhjmzOQ==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggfEvxvCnPiJZva++
Ux3eBhSz9VEzC4lcDkfJJsQwltGhRANCAAQ+ilKprDN3r5E5Bh/7T0i+mU+aN3Lw
6424UpCafNZbPMoaW9tISU/heOiWCgjqlLPpsPaimZP15vTf82hGDLOw
-----END PRIVATE KEY-----
`,
}
