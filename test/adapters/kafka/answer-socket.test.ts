import { createServer } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answerSocket, answers } from '../../../lib/adapters/kafka/answer-socket.ts'

function framed(answer: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(answer.length)
  return Buffer.concat([length, answer])
}

test('gives the same answers however their bytes were cut, though the pieces are overwritten', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.integer({ min: 1, max: 30 })), (sent, cuts) => {
      const whole: Buffer[] = []
      const take = answers(
        (answer) => whole.push(answer),
        () => expect.unreachable(),
      )
      const stream = Buffer.concat(sent.map(framed))
      const lent = Buffer.alloc(stream.length + 1)
      for (let at = 0, turn = 0; at < stream.length; turn++) {
        const bytes = Math.min(cuts[turn] ?? stream.length, stream.length - at)
        stream.copy(lent, 0, at, at + bytes)
        take(lent, bytes)
        lent.fill(0xee)
        at += bytes
      }
      expect(whole).toStrictEqual(sent.map(framed))
    }),
  )
})

test('refuses a length that no broker sends', () => {
  for (const bytes of [Buffer.from('HTTP/1.1 400'), Buffer.from('ffffffff', 'hex')]) {
    const refused: number[] = []
    const take = answers(
      () => expect.unreachable(),
      (length) => refused.push(length),
    )
    take(bytes, bytes.length)
    expect(refused).toEqual([bytes.readInt32BE()])
  }
})

test('emits whole answers, then the end', async () => {
  const sent = [Buffer.alloc(600_000, 1), Buffer.from('x'), Buffer.alloc(0)]
  const server = createServer((socket) => socket.end(Buffer.concat(sent.map(framed))))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const got: Buffer[] = []
  await new Promise((resolve) => {
    const socket = answerSocket({ host: '127.0.0.1', port, onConnect: () => {} })
    socket.on('data', (answer: Buffer) => got.push(answer)).once('end', resolve)
  })
  server.close()
  expect(got.map((answer) => answer.length)).toEqual([600_004, 5, 4])
  expect(got).toStrictEqual(sent.map(framed))
})

test('fails when the other end speaks another protocol', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const error = await new Promise<Error>((resolve) => {
    answerSocket({ host: '127.0.0.1', port, onConnect: () => {} }).once('error', resolve)
  })
  server.close()
  expect(error.message).toContain('is no Kafka broker')
})
