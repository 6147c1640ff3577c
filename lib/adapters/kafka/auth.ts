/**
 * TLS and SASL: from what a user writes to what a connection needs.
 *
 * Passwords may be functions, so that they can come from a secret store when a connection opens; nothing here is
 * printed or put into an error. MSK IAM is OAUTHBEARER with a token signed by `aws-msk-iam-sasl-signer-js`, an
 * optional package; a token is used until shortly before its end.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { PawlError } from '../../model/errors.ts'
import type { KafkaJsSasl } from './kafkajs.ts'

/** A secret, or where to get it. */
export type Secret = string | (() => string | Promise<string>)

/** How a client says who it is. */
export type SaslOptions =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      readonly username: string
      readonly password: Secret
    }
  /** User and password together, asked for with each new socket, so that both may rotate. */
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      readonly credentials: () => Promise<{ readonly username: string; readonly password: string }>
    }
  /** Amazon MSK: the credentials of the process, or of a role. */
  | { readonly mechanism: 'aws-iam'; readonly region: string; readonly roleArn?: string }

/** True for TLS with the system's authorities; else what `node:tls` takes (`ca`, `cert`, `key`, …). */
export type SslOptions = boolean | TlsOptions

/** What a socket needs. */
export interface Security {
  readonly ssl: TlsOptions | null
  readonly sasl: KafkaJsSasl | null
}

/** Signs tokens for MSK; `expiryTime` in milliseconds since the Unix epoch. */
export interface TokenSigner {
  generateAuthToken(options: { readonly region: string }): Promise<SignedToken>
  generateAuthTokenFromRole(options: { readonly region: string; readonly awsRoleArn: string }): Promise<SignedToken>
}

interface SignedToken {
  readonly token: string
  readonly expiryTime: number
}

/** How long before its end a token is no longer handed out. */
const tokenSpareMs = 60_000

/** Gives the security of each new socket; secrets are looked up then. */
export function securityOf(options: {
  readonly ssl?: SslOptions
  readonly sasl?: SaslOptions
}): () => Promise<Security> {
  const { sasl } = options
  // IAM is refused without TLS, so it is implied.
  const wanted = options.ssl ?? sasl?.mechanism === 'aws-iam'
  const ssl = wanted === true ? {} : wanted === false ? null : wanted
  if (sasl === undefined) return async () => ({ ssl, sasl: null })
  if (sasl.mechanism === 'aws-iam') {
    const token = iamTokens(sasl)
    const provided: KafkaJsSasl = {
      mechanism: 'oauthbearer',
      oauthBearerProvider: async () => ({ value: await token() }),
    }
    return async () => ({ ssl, sasl: provided })
  }
  const { mechanism } = sasl
  if ('credentials' in sasl) return async () => ({ ssl, sasl: { mechanism, ...(await sasl.credentials()) } })
  const { username, password } = sasl
  return async () => ({
    ssl,
    sasl: { mechanism, username, password: typeof password === 'string' ? password : await password() },
  })
}

/** Hands out tokens, each until a minute before its end; many who ask at once share one signature. */
export function iamTokens(
  options: { readonly region: string; readonly roleArn?: string },
  loadSigner: () => Promise<TokenSigner> = loadMskSigner,
  nowMs: () => number = Date.now,
): () => Promise<string> {
  let current: Promise<SignedToken> | null = null
  const sign = async () => {
    const signer = await loadSigner()
    const { region, roleArn } = options
    return roleArn === undefined
      ? signer.generateAuthToken({ region })
      : signer.generateAuthTokenFromRole({ region, awsRoleArn: roleArn })
  }
  return async () => {
    const known = current
    if (known !== null) {
      const { token, expiryTime } = await known
      if (nowMs() < expiryTime - tokenSpareMs) return token
    }
    if (current === known) {
      const signing = sign()
      signing.catch(() => {
        if (current === signing) current = null
      })
      current = signing
    }
    return (await current!).token
  }
}

async function loadMskSigner(): Promise<TokenSigner> {
  try {
    return await import('aws-msk-iam-sasl-signer-js' as string)
  } catch (error) {
    const name = 'aws-msk-iam-sasl-signer-js'
    throw new PawlError('PACKAGE_MISSING', name, { package: name }, error)
  }
}
