import { type Env, readDatabaseUrl, readEnvironment } from './environment.ts'
import { type LogLevel, type RateLimits, readLogLevel, readRateLimits } from './http_settings.ts'

export type SandboxConfig = {
  readonly kind: 'sandbox'
  readonly port: number
  readonly host: string
  readonly dataDir: string
  /** Null: the sandbox brings its own PostgreSQL. */
  readonly databaseUrl: string | null
  readonly logLevel: LogLevel
  readonly rateLimits: RateLimits
}

/** Throws ConfigError naming every problem. */
export function readSandboxConfig(env: Env): SandboxConfig {
  const from = readEnvironment(env, 'sandbox')
  const host = from.text('HOST') ?? ''
  if (!isLoopback(host)) {
    from.report('HOST', `the sandbox gives its money away, so it listens on 127.0.0.1, ::1 or localhost only`)
  }
  return from.finish({
    kind: 'sandbox',
    // 0 lets the system choose a free port, for tests that run side by side.
    port: from.integer('PORT', 0, 65_535),
    host,
    dataDir: from.text('CAMBIST_DATA_DIR') ?? '',
    databaseUrl: readDatabaseUrl(from, 'DATABASE_URL'),
    logLevel: readLogLevel(from),
    rateLimits: readRateLimits(from),
  })
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
