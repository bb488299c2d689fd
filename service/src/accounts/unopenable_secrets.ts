import type { AccountsPlace } from './accounts.ts'
import type { SecretBox } from './secret_box.ts'

/** What a key that is not configured has sealed, and nobody can use without it. */
export type Unopenable = {
  /** Names the key without telling anything about it. */
  readonly accountKey: string
  readonly apiSecrets: number
  readonly webhookSecrets: number
}

/** Of the secrets that live. Reads all of them, none for long: it is for the start of a process or command. */
export async function findUnopenable({
  db,
  box,
  wallMs,
}: Pick<AccountsPlace, 'db' | 'wallMs'> & { readonly box: SecretBox }): Promise<readonly Unopenable[]> {
  const found = await db.query<Unopenable>(
    // Where the id of its key stands in a sealed secret: secret_box.ts.
    `SELECT encode(substring(sealed FROM 2 FOR 8), 'hex') AS "accountKey",
       count(*) FILTER (WHERE is_api)::integer AS "apiSecrets",
       count(*) FILTER (WHERE NOT is_api)::integer AS "webhookSecrets"
     FROM (
       SELECT sealed, true AS is_api, expires_at_ms FROM api_key_secrets JOIN api_keys USING (key_id)
       WHERE revoked_at_ms IS NULL
       UNION ALL SELECT sealed, false, expires_at_ms FROM webhook_secrets) AS secrets
     WHERE expires_at_ms IS NULL OR expires_at_ms > $1 GROUP BY 1 ORDER BY 1`,
    [wallMs()],
  )
  return found.filter(({ accountKey }) => !box.hasKey(accountKey))
}
