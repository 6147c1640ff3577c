/**
 * Certificates and listener settings of a secured test broker.
 *
 * Everything is made with openssl when the test starts: an authority, a server and a client certificate, valid
 * for a day, as PEM, which brokers read since KIP-651.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificates {
  readonly ca: string
  readonly clientCert: string
  readonly clientKey: string
  /** Files for the broker. */
  readonly serverStore: string
  readonly caFile: string
}

export function writeCertificates(directory: string): Certificates {
  const file = (name: string) => join(directory, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const key = ['-newkey', 'rsa:2048', '-nodes']
  openssl(
    'req',
    '-x509',
    ...key,
    '-days',
    '1',
    '-subj',
    '/CN=pawl test authority',
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.pem'),
  )
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  for (const name of ['server', 'client']) {
    openssl('req', ...key, '-subj', `/CN=${name}`, '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`))
    const signer = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '1']
    openssl(
      'x509',
      '-req',
      '-in',
      file(`${name}.csr`),
      ...signer,
      '-extfile',
      file('names'),
      '-out',
      file(`${name}.pem`),
    )
  }
  const text = (name: string) => readFileSync(file(name), 'utf8')
  writeFileSync(file('server.store'), text('server.key') + text('server.pem') + text('ca.pem'))
  return {
    ca: text('ca.pem'),
    clientCert: text('client.pem'),
    clientKey: text('client.key'),
    serverStore: file('server.store'),
    caFile: file('ca.pem'),
  }
}

export function securityProperties(certificates: Certificates, password: string): Record<string, string> {
  const module = (name: string, rest = '') => `org.apache.kafka.common.security.${name} required${rest};`
  const scram = module('scram.ScramLoginModule')
  return {
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'listener.name.sasl_plaintext.plain.sasl.jaas.config': module(
      'plain.PlainLoginModule',
      ` user_alice="${password}"`,
    ),
    'listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config': scram,
    'listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config': scram,
    'listener.name.ssl.ssl.client.auth': 'required',
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': certificates.serverStore,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': certificates.caFile,
  }
}
