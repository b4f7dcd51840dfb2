from placement.overtime.migration.simulate import migrate as migrate
