import type { Env } from '../config/environment.ts'
import { readServeConfig } from '../config/serve_config.ts'
import { createLogger } from '../log.ts'
import { serve } from '../serve.ts'
import { untilStopped } from './until_stopped.ts'

/** `cambist serve`: a process of the real service, until a signal stops it. */
export async function runServe(env: Env, roles: string | undefined): Promise<void> {
  const config = readServeConfig(env, roles)
  const service = await serve(config, createLogger(config.logLevel))
  await untilStopped(service.stop)
}
