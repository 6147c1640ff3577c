/**
 * A socket that hands over whole answers, each in one buffer of its own.
 *
 * Every answer of a broker begins with its length. Node would give a new buffer for each piece of it that arrives, and
 * kafkajs would copy the pieces together: twice the memory, and the garbage collector's work with it, for what is most
 * of the bytes that a pipeline reads. Here the pieces arrive in one buffer that is used again and again, and are copied
 * once to where they stay. Over TLS there is no such way in; kafkajs opens those sockets itself.
 */
import { connect, type Socket } from 'node:net'
import { lend } from '../shared/lent-memory.ts'

/** Read from the system at once. */
const pieceBytes = 256 * 1024
const lengthBytes = 4
/** No answer is longer; the other end is no broker, then. */
const answerBytesMax = 512 * 1024 * 1024
const keepAliveMs = 60_000

/** Where a socket is to lead, as kafkajs says it. */
export interface SocketOptions {
  readonly host: string
  readonly port: number
  readonly onConnect: () => void
}

/** Opens a socket whose `data` events are answers with their length before them. */
export function answerSocket({ host, port, onConnect }: SocketOptions): Socket {
  const take = answers(
    (answer) => socket.emit('data', answer),
    (bytes) => socket.destroy(new Error(`an answer of ${bytes} bytes: ${host}:${port} is no Kafka broker`)),
  )
  const onread = {
    buffer: Buffer.allocUnsafeSlow(pieceBytes),
    callback: (bytes: number, piece: Uint8Array) => {
      take(piece as Buffer, bytes)
      return true
    },
  }
  const socket = connect({ host, port, onread }, onConnect)
  socket.setKeepAlive(true, keepAliveMs)
  return socket
}

/** Puts answers together from pieces, which are only lent. */
export function answers(
  whole: (answer: Buffer) => void,
  refuse: (bytes: number) => void,
): (piece: Buffer, bytes: number) => void {
  const length = Buffer.alloc(lengthBytes)
  let known = 0
  let answer: Buffer | null = null
  let filled = 0
  return (piece, bytes) => {
    for (let at = 0; at < bytes; ) {
      if (answer === null) {
        length[known++] = piece[at++]
        if (known < lengthBytes) continue
        const size = length.readInt32BE()
        if (size < 0 || size > answerBytesMax) return refuse(size)
        answer = lend(lengthBytes + size)
        filled = length.copy(answer)
        known = 0
      } else {
        const copied = piece.copy(answer, filled, at, Math.min(bytes, at + answer.length - filled))
        filled += copied
        at += copied
      }
      if (filled < answer.length) continue
      const complete = answer
      answer = null
      whole(complete)
    }
  }
}
