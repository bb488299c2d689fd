import { mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import pino, { type DestinationStream, type Logger } from 'pino'
import type { LogLevel } from './config/http_settings.ts'

/** Fields that must never reach a log, should anybody hand them over by mistake; what is logged is chosen, not filtered. */
const SECRET_FIELDS = [
  'secret',
  'token',
  'seed',
  'mnemonic',
  'passphrase',
  'password',
  'seal',
  'authorization',
  'api_secret',
  'webhook_secret',
]

/** JSON lines to standard output, or to a file. */
export function createLogger(level: LogLevel, file?: string): Logger {
  const options = {
    level,
    base: null,
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: '[hidden]' },
  }
  return pino(options, openDestination(file === undefined ? 1 : openForAppending(file)))
}

/** Of lines that wait; what comes when they are more is lost. */
const WAITING_BYTES_MAX = 16_000_000

/**
 * Where nothing can be written (a full disk, most likely) lines wait until it can be again. Left to itself the destination
 * would throw where nobody catches it, and then keep the process that this ends from ending: it tries for ever to write
 * the rest.
 */
function openDestination(fd: number): DestinationStream {
  // At least a byte, because without a least length it does not flush when it is asked to.
  const destination = pino.destination({
    dest: fd,
    sync: false,
    minLength: 1,
    maxLength: WAITING_BYTES_MAX,
  })
  let isStuck = false
  destination.on('error', () => {
    isStuck = true
  })
  destination.on('write', () => {
    isStuck = false
  })
  // It only tries again when a line is taken, and takes none while too many wait.
  destination.on('drop', () => destination.flush())
  const flushSync = destination.flushSync.bind(destination)
  destination.flushSync = () => {
    if (!isStuck) flushSync()
  }
  return destination
}

/** At once: a logger that is still opening its file throws when the process exits meanwhile. */
function openForAppending(file: string): number {
  mkdirSync(dirname(file), { recursive: true })
  return openSync(file, 'a')
}
