import { connect, type Socket } from 'node:net'
import type { Outcome } from '../../domain/outcome.ts'
import type { Room, Signed, Signer, SignRejection } from '../signer.ts'
import { PROTOCOL } from './protocol.ts'
import { decodeMessage, encodeMessage, MESSAGE_BYTES_MAX, readLines } from './socket_lines.ts'

/** No answer that is understood: the signer may have signed or not. Asking the same again later is safe and gives the same bytes. */
export class SignerUnavailable extends Error {
  override readonly name = 'SignerUnavailable'
}

type Pending = { resolve(result: unknown): void; reject(error: Error): void }
type Connection = { readonly socket: Socket; readonly pending: Map<number, Pending> }

/** A signer in another process. Connects when it is first asked and again whenever the line was cut. */
export function socketSigner(options: {
  readonly path: string
  /** Real milliseconds until a request without an answer rejects with `SignerUnavailable`. */
  readonly timeoutMs: number
}): Signer & { close(): void } {
  const { path, timeoutMs } = options
  let connection: Connection | null = null
  let isClosed = false
  let lastId = 0

  const open = (): Connection => {
    const opened = openConnection(path, () => {
      if (connection === opened) connection = null
    })
    return opened
  }
  const ask = (method: string, params: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      if (isClosed) throw new SignerUnavailable('the signer client is closed')
      lastId += 1
      const id = lastId
      const message = encodeMessage({ id, protocol: PROTOCOL, method, params })
      // The signer would cut the line, and with it every other request.
      if (Buffer.byteLength(message) > MESSAGE_BYTES_MAX)
        throw new Error('the request is too long for the signer')
      connection ??= open()
      const { socket, pending } = connection
      const deadline = AbortSignal.timeout(timeoutMs)
      const late = () => settle().reject(new SignerUnavailable(`no answer within ${timeoutMs} ms`))
      const settle = (): Pending => {
        pending.delete(id)
        deadline.removeEventListener('abort', late)
        return { resolve, reject }
      }
      deadline.addEventListener('abort', late)
      pending.set(id, {
        resolve: (result) => settle().resolve(result),
        reject: (error) => settle().reject(error),
      })
      socket.write(message)
    })
  return {
    addresses: async (...params) => readAddresses(await ask('addresses', params)),
    room: async (...params) => readRoom(await ask('room', params)),
    lastSigned: async (...params) => readNumber(await ask('lastSigned', params)),
    lastOutflow: async (...params) => readNumber(await ask('lastOutflow', params)),
    sign: async (...params) => readSigned(await ask('sign', params)),
    connection: () => connection,
    close() {
      isClosed = true
      connection?.socket.destroy()
    },
  }
}

function openConnection(path: string, onEnd: () => void): Connection {
  const socket = connect(path)
  const pending = new Map<number, Pending>()
  let cause: unknown
  socket.on('error', (error) => {
    cause = error
  })
  const read = async () => {
    for await (const line of readLines(socket)) takeAnswer(decodeMessage(line), path, pending)
  }
  read()
    .catch((error: unknown) => {
      cause ??= error
    })
    .finally(() => {
      socket.destroy()
      onEnd()
      const why = cause instanceof Error ? cause.message : 'it closed the connection'
      for (const waiting of [...pending.values()]) {
        waiting.reject(new SignerUnavailable(`the signer on ${path} does not answer: ${why}`, { cause }))
      }
    })
  return { socket, pending }
}

function takeAnswer(message: unknown, path: string, pending: ReadonlyMap<number, Pending>): void {
  if (typeof message !== 'object' || message === null) throw new Error('an answer is an object')
  const { id, protocol, result, error } = message as Record<string, unknown>
  if (typeof id !== 'number') throw new Error(`the signer did not understand: ${String(error)}`)
  // An answer to a request that was given up on finds nobody.
  const asked = pending.get(id)
  if (protocol !== PROTOCOL) {
    const theirs = typeof protocol === 'number' ? protocol : 'an earlier one'
    const why = `the signer on ${path} is of another release (its protocol is ${theirs}, ours ${PROTOCOL}): start both of the same`
    asked?.reject(new SignerUnavailable(why))
  } else if (error === undefined) asked?.resolve(result)
  else asked?.reject(new Error(String(error)))
}

function readAddresses(result: unknown): readonly string[] {
  if (!Array.isArray(result) || !result.every((item) => typeof item === 'string')) {
    throw new Error('the signer answered something else than addresses')
  }
  return result
}

function readRoom(result: unknown): Room {
  const room = result as Room | null | undefined
  const isRoom =
    typeof room?.onePayout === 'bigint' && (room.together === null || typeof room.together === 'bigint')
  if (!isRoom || room === null || room === undefined) {
    throw new Error('the signer answered something else than what its limits leave')
  }
  return room
}

/** Nothing but a number says that nothing was signed. */
function readNumber(result: unknown): number {
  if (typeof result !== 'number' || !Number.isSafeInteger(result) || result < 0) {
    throw new Error('the signer answered something else than the number of an attempt or outflow')
  }
  return result
}

function readSigned(result: unknown): Outcome<Signed, SignRejection> {
  const outcome = result as Outcome<Signed, SignRejection> | null | undefined
  const isOutcome =
    outcome?.ok === true
      ? typeof outcome.value?.txHash === 'string' && typeof outcome.value.bytes === 'string'
      : outcome?.ok === false && typeof outcome.rejection?.code === 'string'
  if (!isOutcome || outcome === null || outcome === undefined) {
    throw new Error('the signer answered something else than a transaction or a rejection')
  }
  return outcome
}
