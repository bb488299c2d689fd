import type { By } from '../db/audit_log.ts'
import type { InstantMs } from '../domain/time.ts'
import type { ChangeLimits } from './ask_limit.ts'
import type { KeysPlace } from './keys.ts'
import type { EndpointsPlace } from './webhook_endpoints.ts'

/** What an owner's acts need. Accounts live by the wall clock; mails are due on the service's (clock.ts). */
export type OwnerPlace = KeysPlace &
  EndpointsPlace & {
    nowMs(): InstantMs
    /** Where links in mails lead to, without a slash at the end. */
    baseUrl(): string
    readonly changeLimits: ChangeLimits
  }

/** Who sent a request, as far as it is written down. */
export type Requester = {
  readonly address: string
  readonly userAgent: string | null
}

/** Who has proven nothing but what they just showed. */
export function visitor({ address }: Requester): By {
  return { actor: 'visitor', address, sessionId: null }
}
