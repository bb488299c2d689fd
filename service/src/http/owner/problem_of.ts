import type { Rejection } from '../../domain/outcome.ts'
import { invalidParameters, type Problem } from '../errors.ts'

/** The field that a refusal of what was given is about. */
const fields: Readonly<Record<string, string>> = {
  email_malformed: 'email',
  ip_range_malformed: 'ip_allow',
  key_malformed: 'body',
  overlap_too_long: 'overlap_seconds',
  url_malformed: 'url',
}

/** What accounts refuse, in the interface's words. What is another's does not exist. */
export function problemOf(rejection: Rejection & { readonly retryAfterSeconds?: number }): Problem {
  const { code, message, retryAfterSeconds } = rejection
  const field = fields[code]
  if (field !== undefined) return invalidParameters([{ field, message }])
  if (retryAfterSeconds !== undefined)
    return { code: 'RATE_LIMITED', message, retry_after: retryAfterSeconds }
  if (code.endsWith('_not_found')) return { code: 'NOT_FOUND', message }
  return { code: code === 'link_invalid' ? 'LINK_INVALID' : 'CONFLICT', message }
}
