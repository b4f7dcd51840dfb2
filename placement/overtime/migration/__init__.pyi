from placement.overtime.migration.simulate import LeaderMigration as LeaderMigration
from placement.overtime.migration.simulate import migrate as migrate
