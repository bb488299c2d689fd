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
  const destination = file === undefined ? 1 : file
  return pino(options, pino.destination({ dest: destination, sync: false, mkdir: true }))
}
