/** What a signature covers, exactly as it goes over the wire. */
export type SignedParts = {
  /** X-API-TIMESTAMP: epoch seconds. */
  readonly timestamp: string
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** Empty for GET. */
  readonly body: string
}

/** X-API-SIGN: lowercase hex HMAC-SHA256. The key is the secret's text, not the bytes its hex digits spell. */
export type Sign = (parts: SignedParts) => Promise<string>

/** WebCrypto, so that it works in browsers too; the imported key is kept. */
export function createSigner(apiSecret: string): Sign {
  const encoder = new TextEncoder()
  let imported: ReturnType<typeof crypto.subtle.importKey> | undefined
  return async ({ timestamp, method, target, body }) => {
    imported ??= crypto.subtle.importKey(
      'raw',
      encoder.encode(apiSecret),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['sign'],
    )
    const text = encoder.encode(`${timestamp}\n${method}\n${target}\n${body}`)
    const mac = await crypto.subtle.sign('HMAC', await imported, text)
    return Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, '0')).join('')
  }
}
