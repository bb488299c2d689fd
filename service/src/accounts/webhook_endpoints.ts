import { randomBytes } from 'node:crypto'
import type { Database, Sql } from '../db/database.ts'
import { assert } from '../domain/assert.ts'
import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import type { InstantMs } from '../domain/time.ts'
import { readReceiverUrl } from '../domain/webhooks/receiver_url.ts'

/** Where an account hears of all its orders, beside the `callback_url` of each. */
export type WebhookEndpoint = {
  readonly endpointId: string
  readonly url: string
  readonly createdAtMs: InstantMs
  readonly disabledAtMs: InstantMs | null
  /** Its owner, or the receiver itself by answering 410; null while it is enabled. */
  readonly disabledBy: 'owner' | 'receiver' | null
}

/** What came of an act that may be done again. */
export type Changed<Value> = { readonly value: Value; readonly isChanged: boolean }

export type EndpointsPlace = {
  readonly db: Database
  wallMs(): InstantMs
  /** Plain http to this machine may be told as well: in the sandbox only (`HttpLimits.loopbackCallbacks`). */
  readonly loopbackAllowed: boolean
}

/** Every event is told once to each. */
const ENDPOINTS_MAX = 10

/**
 * Events from now on are told to it. The same URL again is the same endpoint, and enabled. Refusals: `url_malformed`,
 * `account_not_found`, `too_many_endpoints`.
 */
export async function createEndpoint(
  place: EndpointsPlace,
  accountId: string,
  url: string,
): Promise<Outcome<Changed<WebhookEndpoint>>> {
  const read = readReceiverUrl(url, place.loopbackAllowed)
  if (!read.ok) return refuse({ ...read.rejection, message: `the URL ${read.rejection.message}` })
  return place.db.transaction(async (tx) => {
    const [account] = await tx.query(
      'SELECT 1 AS one FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE',
      [accountId],
    )
    if (account === undefined) {
      return refuse({ code: 'account_not_found', message: `there is no account ${accountId}` })
    }
    const known = await listEndpoints({ db: tx }, accountId)
    const same = known.find((endpoint) => endpoint.url === url)
    if (same?.disabledAtMs === null) return accept({ value: same, isChanged: false })
    if (known.length >= ENDPOINTS_MAX && same === undefined) {
      return refuse({
        code: 'too_many_endpoints',
        message: `an account has at most ${ENDPOINTS_MAX} endpoints: delete one first`,
      })
    }
    const [endpoint] = await tx.query<WebhookEndpoint>(
      `INSERT INTO webhook_endpoints (endpoint_id, account_id, url, created_at_ms) VALUES ($1, $2, $3, $4)
       ON CONFLICT (account_id, url) DO UPDATE SET disabled_at_ms = NULL, disabled_by = NULL
       RETURNING ${COLUMNS}`,
      [`we_${randomBytes(8).toString('hex')}`, accountId, url, place.wallMs()],
    )
    assert(endpoint !== undefined, 'the endpoint is new or was there')
    return accept({ value: endpoint, isChanged: true })
  })
}

/** The oldest first. */
export function listEndpoints(
  { db }: { readonly db: Sql },
  accountId: string,
): Promise<readonly WebhookEndpoint[]> {
  return db.query<WebhookEndpoint>(
    `SELECT ${COLUMNS} FROM webhook_endpoints WHERE account_id = $1 ORDER BY created_at_ms, endpoint_id`,
    [accountId],
  )
}

export async function findEndpoint(
  { db }: { readonly db: Sql },
  accountId: string,
  endpointId: string,
): Promise<WebhookEndpoint | null> {
  const [endpoint] = await db.query<WebhookEndpoint>(
    `SELECT ${COLUMNS} FROM webhook_endpoints WHERE account_id = $1 AND endpoint_id = $2`,
    [accountId, endpointId],
  )
  return endpoint ?? null
}

/**
 * What still waits for it is not told any more; the delivery log keeps what was. One that answered 410 is then disabled by its
 * owner, since the same instant, and nothing more is written down for it. Refusal: `endpoint_not_found`.
 */
export function disableEndpoint(
  { db, wallMs }: EndpointsPlace,
  accountId: string,
  endpointId: string,
): Promise<Outcome<Changed<WebhookEndpoint>>> {
  return change(
    db,
    `UPDATE webhook_endpoints SET disabled_at_ms = coalesce(disabled_at_ms, $3), disabled_by = 'owner'
     WHERE account_id = $1 AND endpoint_id = $2 AND disabled_by IS DISTINCT FROM 'owner' RETURNING ${COLUMNS}`,
    [accountId, endpointId, wallMs()],
  )
}

/**
 * Events from now on are told to it again; what happened meanwhile can be delivered again from the log if it was cancelled
 * there. Refusal: `endpoint_not_found`.
 */
export function enableEndpoint(
  { db }: EndpointsPlace,
  accountId: string,
  endpointId: string,
): Promise<Outcome<Changed<WebhookEndpoint>>> {
  return change(
    db,
    `UPDATE webhook_endpoints SET disabled_at_ms = NULL, disabled_by = NULL
     WHERE account_id = $1 AND endpoint_id = $2 AND disabled_at_ms IS NOT NULL RETURNING ${COLUMNS}`,
    [accountId, endpointId],
  )
}

/** Refusal: `endpoint_not_found`. */
export async function deleteEndpoint(
  { db }: EndpointsPlace,
  accountId: string,
  endpointId: string,
): Promise<Outcome<null>> {
  const deleted = await db.query(
    'DELETE FROM webhook_endpoints WHERE account_id = $1 AND endpoint_id = $2 RETURNING endpoint_id',
    [accountId, endpointId],
  )
  return deleted.length === 0 ? noSuchEndpoint(endpointId) : accept(null)
}

const COLUMNS = `endpoint_id AS "endpointId", url, created_at_ms AS "createdAtMs", disabled_at_ms AS "disabledAtMs",
  disabled_by AS "disabledBy"`

/** A statement that finds nothing to change may have found the endpoint as it is wanted. */
async function change(
  db: Sql,
  statement: string,
  values: readonly [string, string, ...unknown[]],
): Promise<Outcome<Changed<WebhookEndpoint>>> {
  const [accountId, endpointId] = values
  const [endpoint] = await db.query<WebhookEndpoint>(statement, values)
  if (endpoint !== undefined) return accept({ value: endpoint, isChanged: true })
  const known = await findEndpoint({ db }, accountId, endpointId)
  return known === null ? noSuchEndpoint(endpointId) : accept({ value: known, isChanged: false })
}

function noSuchEndpoint(endpointId: string) {
  return refuse({ code: 'endpoint_not_found', message: `there is no endpoint ${endpointId}` })
}
