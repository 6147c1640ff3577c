import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { addressOf } from '../../../lib/adapters/shared/database-address.ts'
import { secretFile } from '../../../lib/adapters/shared/secret.ts'

const form = { sink: 'rows', protocols: ['postgres:', 'postgresql:'], port: 5432 }

test('a connection string gives its parts, decoded', async () => {
  const address = await addressOf('postgres://us%40er:p%2Fw%3A@db.example:6543/shop?sslmode=verify-full', form)
  const parts = { host: 'db.example', port: 6543, user: 'us@er', password: 'p/w:', database: 'shop', tls: {} }
  expect(address).toEqual(parts)
})

test('what a connection string leaves out has its default', async () => {
  const none = { user: undefined, password: undefined, database: undefined, tls: null }
  expect(await addressOf('postgresql://', form)).toEqual({ host: 'localhost', port: 5432, ...none })
  expect(await addressOf('postgres://[::1]', form)).toMatchObject({ host: '::1' })
  expect(await addressOf('postgres:///db?host=/run/postgresql', form)).toMatchObject({ host: '/run/postgresql' })
})

test('every mode that asks for TLS verifies the server, but for no-verify', async () => {
  const tls = async (mode: string) => (await addressOf(`postgres://h/d?sslmode=${mode}`, form)).tls
  expect(await Promise.all(['disable', 'require', 'verify-ca', 'no-verify'].map(tls))).toEqual([
    null,
    {},
    {},
    { rejectUnauthorized: false },
  ])
})

test('a misspelt parameter is refused rather than left out', async () => {
  for (const query of ['ssl-mod=require', 'sslmode=verify', 'password=x']) {
    await expect(addressOf(`postgres://h/d?${query}`, form)).rejects.toMatchObject({ code: 'PIPELINE_INVALID' })
  }
})

test('a secret in a file is read anew for each connection, without the newline at its end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-secret-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'url')
  const hostNow = async () => (await addressOf(secretFile(file), form)).host
  writeFileSync(file, 'postgres://first/d\n')
  expect(await hostNow()).toBe('first')
  writeFileSync(file, 'postgres://second/d\r\n')
  expect(await hostNow()).toBe('second')
})

test('parts take their password from a function', async () => {
  const connection = { host: 'h', user: 'u', password: async () => 'p', database: 'd', ssl: true }
  expect(await addressOf(connection, form)).toEqual({
    host: 'h',
    port: 5432,
    user: 'u',
    password: 'p',
    database: 'd',
    tls: {},
  })
})
