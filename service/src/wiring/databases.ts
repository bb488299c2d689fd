import { connectionName } from '../db/connected_roles.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { rolesOf, type ServiceOptions } from './roles.ts'

/** Gives a database the schema of this release. `variable` is where its address was read from. */
export function bringSchema(
  { logger }: ServiceOptions,
  url: string,
  variable: 'DATABASE_URL' | 'SIGNER_DATABASE_URL',
): Promise<void> {
  return migrate(
    url,
    (line) => logger.info({ database: variable }, line),
    (line) => logger.debug({ database: variable, migration: line }, 'migrating'),
  )
}

/** Connections that say in PostgreSQL which roles they are of. */
export function openPool(
  { logger, roles, databaseLimits }: ServiceOptions,
  url: string,
  connectionsMax: number,
): Database {
  return openDatabase({
    url,
    connectionsMax,
    applicationName: connectionName(rolesOf(roles)),
    onConnectionLost: (error) => logger.warn({ err: error }, 'a database connection was lost'),
    ...(databaseLimits && { limits: databaseLimits }),
  })
}
