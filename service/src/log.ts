import { mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import pino, { type Logger } from 'pino'
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
  return pino(
    options,
    pino.destination({ dest: file === undefined ? 1 : openForAppending(file), sync: false }),
  )
}

/** At once: a logger that is still opening its file throws when the process exits meanwhile. */
function openForAppending(file: string): number {
  mkdirSync(dirname(file), { recursive: true })
  return openSync(file, 'a')
}
